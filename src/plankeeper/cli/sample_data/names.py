"""Random names of many backgrounds. Any resemblance to real people is coincidental."""

from random import Random
from typing import NamedTuple

from plankeeper.cli.sample_data.random_values import chance


class _Background(NamedTuple):
    women: tuple[str, ...]
    men: tuple[str, ...]
    families: tuple[str, ...]


class Name(NamedTuple):
    """A person's name and gender ("Female", "Male" or "Non-binary")."""

    first: str
    last: str
    gender: str


_BACKGROUNDS = (
    _Background(
        ("Charlotte", "Olivia", "Matilda", "Georgia", "Heather", "Margaret", "Zoë", "Imogen", "Bronwyn"),
        ("Jack", "William", "Lachlan", "Angus", "Trevor", "Graham", "Callum", "Hamish", "Darren"),
        ("Thompson", "Whitfield", "Cartwright", "Hughes", "McAllister", "Fairweather", "Doyle", "Barker"),
    ),
    _Background(
        ("Niamh", "Siobhán", "Aoife", "Róisín", "Maeve", "Orla"),
        ("Declan", "Cormac", "Seán", "Eoin", "Fergus", "Padraig"),
        ("O'Sullivan", "Kavanagh", "Ó Briain", "Gallagher", "O'Dea", "Fitzgerald"),
    ),
    _Background(
        ("Tarni", "Marlee", "Kirra", "Shontelle", "Leanne", "Aleisha"),
        ("Jarrah", "Koa", "Tyrell", "Jayden", "Warren", "Darcy"),
        ("Morgan", "Simpson", "Clarke", "Roberts", "Saunders", "Walker"),
    ),
    _Background(
        ("Linh", "Mai", "Thảo", "Hương", "Bích Ngọc", "Lan Anh"),
        ("Minh", "Quang", "Hùng", "Đức", "Tuấn", "Khoa"),
        ("Nguyễn", "Trần", "Lê", "Phạm", "Đặng", "Huỳnh"),
    ),
    _Background(
        ("Mei", "Xiu Ying", "Jing", "Yan", "Wei Ling", "Hui Min"),
        ("Wei", "Jun", "Hao", "Ming", "Kai", "Zhi Peng"),
        ("Chen", "Wang", "Zhang", "Liu", "Huang", "Lim", "Cheung"),
    ),
    _Background(
        ("Priya", "Ananya", "Lakshmi", "Harpreet", "Divya", "Nimali"),
        ("Arjun", "Rohan", "Gurpreet", "Vikram", "Sanjay", "Dinesh"),
        ("Sharma", "Patel", "Singh", "Iyer", "Kaur", "Perera", "Wickramasinghe"),
    ),
    _Background(
        ("Fatima", "Layla", "Yasmin", "Noor", "Zahra", "Rania", "Hiba"),
        ("Omar", "Hassan", "Yusuf", "Karim", "Bilal", "Tariq", "Elias"),
        ("Haddad", "Khoury", "Al-Masri", "Rahimi", "Hosseini", "Nasser", "Yilmaz"),
    ),
    _Background(
        ("Eleni", "Sofia", "Despina", "Giulia", "Carmela", "Francesca"),
        ("Nikos", "Stavros", "Dimitri", "Marco", "Salvatore", "Enzo"),
        ("Papadopoulos", "Georgiou", "Karalis", "Rossi", "Di Pietro", "Esposito"),
    ),
    _Background(
        ("Katarzyna", "Małgorzata", "Ivana", "Milica", "Oksana", "Ilona"),
        ("Piotr", "Tomasz", "Zoran", "Dragan", "Andrij", "László"),
        ("Kowalski", "Wójcik", "Petrović", "Horvat", "Shevchenko", "Szabó"),
    ),
    _Background(
        ("Sina", "Leilani", "Moana", "Aroha", "Mele", "Anahera"),
        ("Tavita", "Sione", "Tama", "Wiremu", "Semisi", "Ioane"),
        ("Tuilagi", "Fonua", "Ngata", "Parata", "Faleolo", "Taufa"),
    ),
    _Background(
        ("Abena", "Nyandeng", "Achol", "Makena", "Selam", "Hodan"),
        ("Deng", "Kwame", "Garang", "Tendai", "Dawit", "Abdi"),
        ("Mensah", "Akech", "Deng Ajak", "Moyo", "Tesfaye", "Warsame"),
    ),
    _Background(
        ("María", "Camila", "Luz", "Valentina", "Jasmine", "Maricel"),
        ("Mateo", "Diego", "Andrés", "Joaquín", "Ramon", "Jericho"),
        ("García", "Muñoz", "Peña", "Santos", "dela Cruz", "Reyes", "Villanueva"),
    ),
    _Background(
        ("Yuki", "Haruka", "Ji-woo", "Min-ji", "Sakura", "Eun-ji"),
        ("Kenji", "Haruto", "Joon-ho", "Takeshi", "Sung-min", "Ren"),
        ("Tanaka", "Sato", "Kim", "Park", "Watanabe", "Choi"),
    ),
)
# In the order of the table, roughly as in the population.
_WEIGHTS = (30, 6, 6, 7, 8, 9, 8, 6, 5, 4, 4, 4, 3)


def random_name(rng: Random) -> Name:
    background = rng.choices(_BACKGROUNDS, _WEIGHTS)[0]
    families = rng.choice(_BACKGROUNDS).families if chance(rng, 12) else background.families
    gender = rng.choices(("Female", "Male", "Non-binary"), (48, 49, 3))[0]
    women = gender == "Female" or (gender == "Non-binary" and chance(rng, 50))
    return Name(rng.choice(background.women if women else background.men), rng.choice(families), gender)


def random_middle_name(rng: Random, gender: str) -> str:
    background = rng.choices(_BACKGROUNDS, _WEIGHTS)[0]
    return rng.choice(background.women if gender == "Female" else background.men)
